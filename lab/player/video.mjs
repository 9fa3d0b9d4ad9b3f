#!/usr/bin/env node
// Makes a DASH video for the lab: ten bitrates from 0.2 to 12 Mbit/s, as in
// BurstTracker, 3.4, with a constant ratio in between (the emulated player's).
//
// Its pictures are small and its bytes mostly filler: the lab tests the transfer of
// the bytes, and a phone without a hardware decoder must play it on time.
import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { parseArgs } from "node:util";

const BITRATES_BPS = [
  200_000, 315_000, 500_000, 780_000, 1_230_000, 1_950_000, 3_070_000, 4_830_000, 7_620_000,
  12_000_000,
];
/** Minimum ratio of a bitrate to the next lower one: a video has at most tens of them. */
const LEAST_STEP = 1.02;
const FRAMES_PER_S = 25;
const USAGE = `airmile-video DIR [--seconds 120] [--segment 4] [--bitrates BPS,BPS,...]

Makes DIR/manifest.mpd and its segments with ffmpeg; what is there stays.`;

function fail(what) {
  console.error(`airmile-video: ${what}`);
  process.exit(2);
}

function options() {
  try {
    const { values, positionals } = parseArgs({
      allowPositionals: true,
      options: {
        seconds: { type: "string", default: "120" },
        segment: { type: "string", default: "4" },
        bitrates: { type: "string", default: BITRATES_BPS.join() },
        help: { type: "boolean", short: "h" },
      },
    });
    if (values.help) {
      console.log(USAGE);
      process.exit(0);
    }
    const [seconds, segment] = [Number(values.seconds), Number(values.segment)];
    if (positionals.length !== 1 || !(seconds > 0) || !(segment > 0)) fail(USAGE);
    const bitrates = values.bitrates.split(",").map(Number);
    const rises = (bps, at) => bps > 0 && (at === 0 || bps >= LEAST_STEP * bitrates[at - 1]);
    if (!bitrates.every(rises)) fail(USAGE);
    return { dir: resolve(positionals[0]), seconds, segment, bitrates };
  } catch (error) {
    return fail(`${error.message}\n${USAGE}`);
  }
}

/** Arguments of ffmpeg for one representation: a constant bitrate by means of filler. */
function representation(bps, at, segment) {
  return [
    "-map", `[v${at}]`, `-c:v:${at}`, "libx264", `-b:v:${at}`, String(bps),
    `-minrate:v:${at}`, String(bps), `-maxrate:v:${at}`, String(bps),
    `-bufsize:v:${at}`, String(bps), `-preset:v:${at}`, "ultrafast",
    `-profile:v:${at}`, "baseline", `-g:v:${at}`, String(FRAMES_PER_S * segment),
    `-x264-params:v:${at}`, "nal-hrd=cbr:force-cfr=1:scenecut=0",
  ];
}

const { dir, seconds, segment, bitrates } = options();
if (existsSync(join(dir, "manifest.mpd"))) process.exit(0);
if (existsSync(dir) && readdirSync(dir).length > 0) fail(`${dir} is not empty, and holds no video: name another`);
// An interrupted run leaves no incomplete video.
mkdirSync(dirname(dir), { recursive: true });
const part = mkdtempSync(`${dir}.part-`);
const failed = (why) => {
  rmSync(part, { recursive: true, force: true });
  fail(why);
};
const outputs = bitrates.map((_, at) => `[v${at}]`).join("");
const done = spawnSync(
  "ffmpeg",
  [
    "-hide_banner", "-loglevel", "error", "-nostdin", "-y",
    "-f", "lavfi", "-i", `testsrc2=size=256x144:rate=${FRAMES_PER_S}:duration=${seconds}`,
    "-filter_complex", `[0:v]format=yuv420p,split=${bitrates.length}${outputs}`,
    ...bitrates.flatMap((bps, at) => representation(bps, at, segment)),
    "-f", "dash", "-seg_duration", String(segment), "-use_timeline", "0", "-use_template", "1",
    "-adaptation_sets", "id=0,streams=v",
    "-init_seg_name", "init-$RepresentationID$.mp4",
    "-media_seg_name", "segment-$RepresentationID$-$Number$.m4s",
    join(part, "manifest.mpd"),
  ],
  { stdio: ["ignore", "inherit", "inherit"] },
);
if (done.error?.code === "ENOENT") failed("needs ffmpeg with libx264, and there is none (apt-get install ffmpeg)");
if (done.error) failed(`ffmpeg: ${done.error.message}`);
if (done.status !== 0) failed(`ffmpeg ended with status ${done.status ?? done.signal}`);
chmodSync(part, 0o755);
// An empty directory is replaced.
renameSync(part, dir);
