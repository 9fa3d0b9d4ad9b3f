/** The time zone of the page: that of the command that made it. */

/** Written by `write::page`; the times are in microseconds since the Unix epoch. */
export interface ZoneData {
  /** A name of the time zone database; `null` if only offsets are known. */
  name: string | null;
  /** `[from, seconds east of UTC]`, ascending; the first holds before, too. */
  offsets: [number, number][];
}

const UTC: ZoneData = { name: "UTC", offsets: [[0, 0]] };

let zone = UTC;

/** Sets the zone before anything is drawn. */
export function setZone(to: ZoneData | null): void {
  zone = to ?? UTC;
}

function offset(us: number): number {
  let seconds = zone.offsets[0]?.[1] ?? 0;
  for (const [from, next] of zone.offsets) if (from <= us) seconds = next;
  return seconds;
}

/** The date and time of a time, as ms of the same date and time in UTC. */
export function civilMs(us: number): number {
  return us / 1_000 + offset(us) * 1_000;
}

const text = (us: number): string => new Date(Math.floor(civilMs(us))).toISOString();

/** Date. */
export function date(us: number): string {
  return text(us).slice(0, 10);
}

/** Time of day, with ms, cut off as in texts. */
export function timeOfDay(us: number): string {
  return text(us).slice(11, 23);
}

/** Date and time, to the second or with ms. */
export function dateTime(us: number, ms = false): string {
  return text(us).slice(0, ms ? 23 : 19).replace("T", " ");
}

/** The zone's name with its offset at a time. */
export function zoneName(us: number): string {
  if (zone.name === "UTC") return zone.name;
  const seconds = offset(us);
  const two = (n: number): string => String(Math.floor(n)).padStart(2, "0");
  const minutes = Math.abs(seconds) / 60;
  const east = `UTC${seconds < 0 ? "−" : "+"}${two(minutes / 60)}:${two(minutes % 60)}`;
  return zone.name === null ? east : `${zone.name} (${east})`;
}

/** A time with its date and zone. */
export function inFull(us: number): string {
  return `${dateTime(us, true)} ${zoneName(us)}`;
}

/** How a list prints its times: as times of day if all are of one date, which its title then has. */
export function timesOf(all: number[]): { title: string; show: (us: number) => string } {
  const first = all[0];
  if (first === undefined) return { title: "", show: timeOfDay };
  const isOne = all.every((us) => date(us) === date(first));
  const name = zoneName(first);
  return isOne
    ? { title: `${date(first)}, ${name}`, show: timeOfDay }
    : { title: name, show: (us) => dateTime(us, true) };
}

/** A time of day at a tick of an axis: as many parts as ticks that are `stepMs` apart need. */
export function tickTime(us: number, stepMs: number): string {
  const unit = stepMs >= 1_000 ? 1_000 : stepMs >= 100 ? 100 : stepMs >= 10 ? 10 : 1;
  const iso = new Date(Math.round(civilMs(us) / unit) * unit).toISOString();
  if (stepMs >= 864e5) return iso.slice(5, 10);
  if (stepMs >= 6e4) return iso.slice(11, 16);
  return iso.slice(11, unit === 1_000 ? 19 : 19 + 5 - String(unit).length);
}
