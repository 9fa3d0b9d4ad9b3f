// In the page: plays, and reports events.
/* global dashjs, reportEvent */
(async () => {
  const options = JSON.parse(document.getElementById("options").textContent);
  const video = document.querySelector("video");
  const shown = document.getElementById("shown");
  const player = dashjs.MediaPlayer().create();
  const now = () => performance.timeOrigin + performance.now();
  const note = (at, event, more = {}) => reportEvent(JSON.stringify({ at, event, ...more }));
  const { events } = dashjs.MediaPlayer;

  const choice = {};
  if (options.rule === "throughput") {
    // The other rules use the buffer or dropped frames.
    choice.rules = Object.fromEntries(
      ["bolaRule", "droppedFramesRule", "insufficientBufferRule", "switchHistoryRule", "abandonRequestsRule"].map(
        (rule) => [rule, { active: false }],
      ),
    );
  }
  if (options.most > 0) {
    const kbps = { video: options.most / 1000 };
    Object.assign(choice, { maxBitrate: kbps, initialBitrate: kbps });
  }

  player.updateSettings({
    debug: { logLevel: dashjs.Debug.LOG_LEVEL_NONE },
    streaming: {
      utcSynchronization: { enabled: false },
      buffer: {
        bufferTimeDefault: options.buffer,
        bufferTimeAtTopQuality: options.buffer,
        bufferTimeAtTopQualityLongForm: options.buffer,
        // Never replaces a buffered segment, so each is fetched once.
        fastSwitchEnabled: false,
      },
      // The pictures are small at every bitrate.
      abr: {
        limitBitrateByPortal: false,
        throughput: { bandwidthSafetyFactor: options.fraction },
        ...choice,
      },
    },
  });

  /** Id of a segment's request; other requests have none. */
  const idOf = ({ mediaType, type, index }) =>
    mediaType === "video" && type === "MediaSegment" ? `${options.name}-${index + 1}` : undefined;
  const bpsOf = (request) => request.representation?.bandwidth ?? request.bandwidth;

  player.on(events.FRAGMENT_LOADING_STARTED, ({ request }) => {
    const id = idOf(request);
    if (!id) return;
    const at = now();
    note(at, "segment_chosen", { id, value: bpsOf(request) });
    note(at, "request", { id, what: request.url });
  });
  player.on(events.FRAGMENT_LOADING_ABANDONED, ({ request }) => {
    const id = idOf(request ?? {});
    if (id) note(now(), "failed", { id, what: "abandoned" });
  });
  player.on(events.FRAGMENT_LOADING_COMPLETED, ({ request, error }) => {
    const id = idOf(request);
    if (!id) return;
    if (error) return note(now(), "failed", { id, what: String(error.message ?? error.code) });
    // The browser's own times if available: those of events are later.
    const timing = performance.getEntriesByName(request.url).at(-1);
    const at = (ms, date) => (ms ? performance.timeOrigin + ms : date.getTime());
    note(at(timing?.responseStart, request.firstByteDate ?? request.endDate), "first_byte", { id });
    note(at(timing?.responseEnd, request.endDate), "end", { id, bytes: request.bytesLoaded, value: bpsOf(request) });
  });

  let warm;
  const done = () => {
    if (warm) {
      const stats = warm.stats();
      note(now(), "keep_warm", { bytes: stats.bytes, value: stats.fetches, what: JSON.stringify(stats) });
    }
    note(now(), "done");
  };
  let started = false;
  let stalledAt;
  const ready = () => {
    if (!started) {
      started = true;
      note(now(), "playback_started");
    } else if (stalledAt !== undefined) {
      note(now(), "resumed", { value: now() - stalledAt });
    }
    stalledAt = undefined;
  };
  video.addEventListener("playing", ready);
  video.addEventListener("waiting", () => {
    if (!started || stalledAt !== undefined || video.ended) return;
    stalledAt = now();
    note(stalledAt, "stalled");
  });
  const ended = () => {
    if (stalledAt !== undefined) ready();
    note(now(), "playback_ended");
    done();
  };
  video.addEventListener("ended", ended);
  player.on(events.ERROR, ({ error }) => {
    note(now(), "failed", { what: `${error.message ?? error}` });
    // dash.js has already retried what can be retried.
    done();
  });

  setInterval(() => {
    if (video.ended) return;
    const buffer = player.getBufferLength("video") || 0;
    note(now(), "buffer", { value: Math.round(buffer * 1000) });
    const bps = player.getCurrentRepresentationForType("video")?.bandwidth ?? 0;
    shown.textContent =
      `${video.currentTime.toFixed(1)} s played, buffer ${buffer.toFixed(1)} s, ` +
      `${(bps / 1e6).toFixed(2)} Mbit/s${stalledAt === undefined ? "" : ", STALLED"}`;
  }, 250);

  if (options.keepWarm) {
    const { attachDash } = await import("/airmile-player/keep-warm/index.js");
    warm = attachDash(player);
  }
  player.initialize(video, options.url, true);
})();
