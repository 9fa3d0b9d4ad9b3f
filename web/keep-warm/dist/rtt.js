/** Round trips measured by the page, and the interval between fetches. */
/** Minimum of Linux's RTO minus the round trip (tcp_rto_min, 200 ms). RFC 6298 has a second
 * (2.4), so other senders wait longer. */
const RTO_BEYOND_RTT_MS = 200;
/** Chosen here: timers of a page and of a phone's modem are late by about ten ms. */
const LEAST_MARGIN_MS = 50;
/** The sender may be a middlebox nearer than the server: its round trip, and therefore its
 * RTO, is shorter by the rest of the path (a tenth, chosen here: the path after a mobile
 * network's core is short compared with the radio leg). */
const REST_OF_PATH = 0.1;
/** The minimum of this number of round trips is the path's own (chosen here: one or two
 * minutes of pauses). */
const LEAST_OF = 256;
/** Chosen here: more than 30 fetches a second never pay off. */
const LEAST_PAUSE_MS = 25;
/** Smoothed round trip and its variation (RFC 6298, 2.2 and 2.3). */
export class RoundTrips {
    #srtt;
    #rttvar = 0;
    #last = [];
    /** The part of the available time that is used; halved if it does not help. */
    #share = 1;
    take(rttMs) {
        if (!(rttMs >= 0))
            return;
        this.#last.push(rttMs);
        if (this.#last.length > LEAST_OF)
            this.#last.shift();
        if (this.#srtt === undefined) {
            this.#srtt = rttMs;
            this.#rttvar = rttMs / 2;
            return;
        }
        this.#rttvar = 0.75 * this.#rttvar + 0.25 * Math.abs(this.#srtt - rttMs);
        this.#srtt = 0.875 * this.#srtt + 0.125 * rttMs;
    }
    /** Smoothed, in ms. */
    get smoothedMs() {
        return this.#srtt;
    }
    /** Time between an answer and the next fetch. Between two bytes from the sender pass this
     * time and a round trip. Their sum must be below the RTO, which is at least the round trip
     * + 200 ms. A longer round trip therefore does not require more frequent fetches, but a
     * varying one does. So does one that is longer here than at the sender: the delay of a
     * busy page or device is subtracted. */
    pauseMs() {
        const srtt = this.#srtt ?? 0;
        const margin = Math.max(LEAST_MARGIN_MS, REST_OF_PATH * srtt + 2 * this.#rttvar);
        const added = this.#last.length > 0 ? srtt - Math.min(...this.#last) : 0;
        const spent = Math.max(margin, LEAST_MARGIN_MS + Math.max(0, added));
        return Math.max(LEAST_PAUSE_MS, this.#share * (RTO_BEYOND_RTT_MS - spent));
    }
    /** Halves the interval. */
    tighten() {
        this.#share /= 2;
    }
    /** Restores the full interval. */
    relax() {
        this.#share = 1;
    }
}
