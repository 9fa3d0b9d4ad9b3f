// A clock and a server that a test controls.

/** A clock that a test advances; promises settle in between. */
export function fakeClock() {
  let now = 0;
  let next = 0;
  const due = new Map();
  const settle = async () => {
    for (let i = 0; i < 20; i++) await Promise.resolve();
  };
  return {
    clock: {
      now: () => now,
      after(ms, call) {
        const id = next++;
        due.set(id, { at: now + ms, call });
        return () => due.delete(id);
      },
    },
    async advance(ms) {
      const end = now + ms;
      await settle();
      for (;;) {
        const [id, first] = [...due].sort(([, a], [, b]) => a.at - b.at)[0] ?? [];
        if (first === undefined || first.at > end) break;
        due.delete(id);
        now = first.at;
        first.call();
        await settle();
      }
      now = end;
      await settle();
    },
  };
}

/** A server a round trip away; records the times of requests. */
export function fakeServer({ clock }, { rttMs = 80, status = 206, length = 1, type = "basic", fails = () => false } = {}) {
  const asked = [];
  const server = { asked, rttMs, status, length, cancelled: 0 };
  server.fetch = (url, init) => {
    asked.push({ at: clock.now(), url, init });
    return new Promise((resolve, reject) => {
      init.signal.addEventListener("abort", () => reject(new Error("aborted")));
      clock.after(server.rttMs, () => {
        if (fails(asked.length)) return reject(new Error("no network"));
        resolve({
          status: server.status,
          type,
          headers: new Headers({ "Content-Length": String(server.length) }),
          body: { cancel: async () => void (server.cancelled += 1) },
          arrayBuffer: async () => new ArrayBuffer(server.length),
        });
      });
    });
  };
  return server;
}

/** A player: fetches `bytes` in `ms`, then pauses. The first byte comes after a round trip. */
export async function segment(time, warm, { bytes = 400_000, ms = 300, pauseMs = 3_000, url = "/segment" } = {}) {
  const ticket = warm.requested(url);
  let isReady = false;
  void ticket.ready.then(() => (isReady = true));
  await time.advance(0);
  while (!isReady) await time.advance(5);
  const from = time.clock.now();
  await time.advance(80 + ms);
  ticket.answered({ bytes, firstByteMs: from + 80, endMs: time.clock.now() });
  await time.advance(pauseMs);
}
