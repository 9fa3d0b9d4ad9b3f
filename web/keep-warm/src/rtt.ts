/** Round trips as the page sees them, and how long it may pause between fetches. */

/** What Linux waits beyond the round trip at least (tcp_rto_min, 200 ms); RFC 6298
 * has a second (2.4), so other senders wait longer. */
const RTO_BEYOND_RTT_MS = 200;
/** Chosen here: timers of a page and of a phone's modem are late by some ten ms. */
const LEAST_MARGIN_MS = 50;
/** The sender may be a middlebox nearer than the server: its round trip, and with it
 * its RTO, is shorter by the rest of the path (a tenth, chosen here: what lies behind
 * a mobile network's core is short beside the radio leg). */
const REST_OF_PATH = 0.1;
/** The least of so many round trips is the path's own (chosen here: a minute or two of pauses). */
const LEAST_OF = 256;
/** Chosen here: over 30 fetches a second are never worth it. */
const LEAST_PAUSE_MS = 25;

/** Smoothed round trip and its variation (RFC 6298, 2.2 and 2.3). */
export class RoundTrips {
  #srtt: number | undefined;
  #rttvar = 0;
  #last: number[] = [];
  /** Of the time that is left, how much is used; halved where it does not help. */
  #share = 1;

  take(rttMs: number): void {
    if (!(rttMs >= 0)) return;
    this.#last.push(rttMs);
    if (this.#last.length > LEAST_OF) this.#last.shift();
    if (this.#srtt === undefined) {
      this.#srtt = rttMs;
      this.#rttvar = rttMs / 2;
      return;
    }
    this.#rttvar = 0.75 * this.#rttvar + 0.25 * Math.abs(this.#srtt - rttMs);
    this.#srtt = 0.875 * this.#srtt + 0.125 * rttMs;
  }

  /** Smoothed, in ms. */
  get smoothedMs(): number | undefined {
    return this.#srtt;
  }

  /** Between an answer and the next fetch. From one byte that the sender sends to the
   * next, this pause and a round trip go by, which must stay under its RTO; and that
   * is at least the round trip and 200 ms. So a longer round trip is no reason to fetch
   * more often, but one that varies is, and one that is longer here than the sender sees
   * it: what a busy page or device adds is taken from the pause. */
  pauseMs(): number {
    const srtt = this.#srtt ?? 0;
    const margin = Math.max(LEAST_MARGIN_MS, REST_OF_PATH * srtt + 2 * this.#rttvar);
    const added = this.#last.length > 0 ? srtt - Math.min(...this.#last) : 0;
    const spent = Math.max(margin, LEAST_MARGIN_MS + Math.max(0, added));
    return Math.max(LEAST_PAUSE_MS, this.#share * (RTO_BEYOND_RTT_MS - spent));
  }

  /** Half the pause from now on. */
  tighten(): void {
    this.#share /= 2;
  }

  /** And whole again. */
  relax(): void {
    this.#share = 1;
  }
}
