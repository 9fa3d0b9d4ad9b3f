/** Size of a request's head (Chromium's has 220 bytes over HTTP, more over TLS and with a
 * referrer), and of the TCP and IP headers, with timestamps, of request, answer and ACK. A
 * page cannot see either. */
export const REQUEST_BYTES = 300;
const PACKETS_BYTES = 3 * 52;
/** Size of the head of an answer from another origin, of which a page sees only a few headers
 * (chosen here: video servers send 400 to 700 bytes). */
const HIDDEN_HEAD_BYTES = 600;
/** Estimated cost of a fetch before the first. */
export const LIKELY_BYTES = REQUEST_BYTES + PACKETS_BYTES + 400;
/** A longer answer than requested is accepted up to this size. */
const MOST_BODY_BYTES = 1_024;
/** Requests the first byte of a URL. Never rejects. */
export async function fetchByte(url, settled, signal) {
    const { fetch, clock, credentials, headers } = settled;
    const fromMs = clock.now();
    let [rttMs, headBytes] = [undefined, 0];
    let more = {};
    const ended = (kind, bodyBytes, why = "", from = url) => {
        const answerBytes = headBytes + bodyBytes;
        const bytes = REQUEST_BYTES + lengthOf(Object.entries(more)) + PACKETS_BYTES + answerBytes;
        return { kind, why, fromMs, toMs: clock.now(), rttMs, bytes, answerBytes, url: from };
    };
    try {
        more = typeof headers === "function" ? headers(url) : headers;
        const answer = await fetch(url, {
            headers: { ...more, Range: "bytes=0-0" },
            cache: "no-store",
            credentials,
            signal,
        });
        rttMs = clock.now() - fromMs;
        const received = [];
        answer.headers.forEach((value, name) => received.push([name, value]));
        headBytes = Math.max(lengthOf(received), answer.type === "cors" ? HIDDEN_HEAD_BYTES : 0);
        const length = Number(answer.headers.get("Content-Length") ?? Number.NaN);
        const from = answer.url || url;
        if (answer.status >= 400) {
            await answer.body?.cancel();
            return ended("failed", 0, `status ${answer.status}`);
        }
        if (answer.status !== 206 && !(length <= MOST_BODY_BYTES)) {
            // The server sends the whole file: cancelling closes the connection.
            await answer.body?.cancel();
            return ended("whole", MOST_BODY_BYTES);
        }
        const body = await answer.arrayBuffer();
        return ended("byte", body.byteLength, "", from);
    }
    catch (error) {
        return ended("failed", 0, error instanceof Error ? error.message : `${error}`);
    }
}
/** Bytes of headers on the wire. */
const lengthOf = (headers) => headers.reduce((sum, [name, value]) => sum + name.length + value.length + 4, 0);
