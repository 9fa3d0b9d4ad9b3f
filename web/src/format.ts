/** Formats numbers for people. */

export const DASH = "–";
/** Keeps a number and its unit on one line. */
const NBSP = "\u00a0";

export function orDash<T>(value: T | null | undefined, show: (value: T) => string): string {
  return value === null || value === undefined ? DASH : show(value);
}

export function percent(share: number, digits = 0): string {
  const value = share * 100;
  if (value > 0 && value < 1 && digits === 0) {
    return value < 0.1 ? `<${NBSP}0.1${NBSP}%` : `${value.toFixed(1)}${NBSP}%`;
  }
  return `${value.toFixed(digits)}${NBSP}%`;
}

/** A confidence of 0 to 1: 100 % is certainty only. */
export function confidence(share: number): string {
  return percent(share < 1 ? Math.min(share, 0.99) : share);
}

/** The prefixes of units, each with its factor and the number of decimals of a size. */
const PREFIXES = [
  { prefix: "G", factor: 1e9, digits: 2 },
  { prefix: "M", factor: 1e6, digits: 2 },
  { prefix: "k", factor: 1e3, digits: 1 },
] as const;

const NO_PREFIX = { prefix: "", factor: 1, digits: 0 };

const prefixOf = (n: number): { prefix: string; factor: number; digits: number } =>
  PREFIXES.find(({ factor }) => Math.abs(n) >= factor) ?? NO_PREFIX;

export function bytes(n: number): string {
  const { prefix, factor, digits } = prefixOf(n);
  return `${(n / factor).toFixed(digits)} ${prefix}B`;
}

/** A value with a prefix, without insignificant digits; `decimals` more than two if they differ. */
export function short(n: number, unit: string, decimals = 2): string {
  const { prefix, factor } = prefixOf(n);
  return `${Number((n / factor).toFixed(decimals))} ${prefix}${unit}`.trimEnd();
}

/** Sizes at the ticks of an axis, with as many decimals as neighbours need to differ. */
export function byteTicks(ticks: number[]): string[] {
  const step = ticks.length > 1 ? (ticks[1] as number) - (ticks[0] as number) : 0;
  return ticks.map((n) => {
    // One more than the step's own, for steps of 2.5.
    const needed = step > 0 ? Math.ceil(Math.log10(prefixOf(n).factor / step)) + 1 : 0;
    return short(n, "B", Math.min(6, Math.max(2, needed)));
  });
}

export function bitrate(bps: number): string {
  if (bps < 1e3) return `${bps.toFixed(0)} bit/s`;
  return bps < 1e6 ? `${(bps / 1e3).toFixed(0)} kbit/s` : `${(bps / 1e6).toFixed(2)} Mbit/s`;
}

/** A duration in a suitable unit. */
export function duration(ms: number): string {
  if (ms < 1_000) return `${ms < 10 && ms % 1 !== 0 ? ms.toFixed(1) : ms.toFixed(0)} ms`;
  if (ms < 60_000) return `${(ms / 1_000).toFixed(2)} s`;
  const s = Math.round(ms / 1_000);
  const two = (n: number) => String(n).padStart(2, "0");
  const h = Math.floor(s / 3_600);
  const m = Math.floor(s / 60) % 60;
  return h > 0 ? `${h} h ${two(m)} min` : `${m} min ${two(s % 60)} s`;
}

/** A position on the time axis: seconds, or minutes and hours on a long axis. */
export function elapsed(ms: number, stepMs: number): string {
  const digits = stepMs >= 1_000 ? 0 : stepMs >= 100 ? 1 : stepMs >= 10 ? 2 : 3;
  if (Math.abs(ms) < 60_000) return `${(ms / 1_000).toFixed(digits)} s`;
  const unit = 10 ** -digits;
  const s = Math.round(ms / 1_000 / unit) * unit;
  const h = Math.floor(s / 3_600);
  const m = Math.floor(s / 60) % 60;
  const seconds = (s % 60).toFixed(digits).padStart(digits > 0 ? 3 + digits : 2, "0");
  return h > 0 ? `${h}:${String(m).padStart(2, "0")}:${seconds}` : `${m}:${seconds}`;
}

export function count(n: number): string {
  return n.toLocaleString("en-GB").replaceAll(",", "\u202f");
}

export function plural(n: number, one: string, many = `${one}s`): string {
  return `${count(n)} ${n === 1 ? one : many}`;
}

/** A value of an enumeration as words, as the command prints it. */
export function words(name: string): string {
  return name.replace(/^loss_recovery_(.*)/, "loss recovery ($1)").replaceAll("_", " ");
}

/** Keeps the numbers of a sentence on one line with their units. */
export function unbroken(text: string): string {
  return text.replace(/(\d) (?=(?:ms|s|min|h|[kKMG]?B|%|[kMG]?bit\/s|dBm?|[kMG]?Hz|PRBs?|TTIs)(?![A-Za-z]))/g, `$1${NBSP}`);
}
