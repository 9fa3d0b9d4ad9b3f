/** Players and pages with their own `fetch`. */
import type { KeepWarm } from "./keep_warm.js";

type GlobalFetch = typeof globalThis.fetch;

/** A `fetch` that reports its requests to `warm`, and otherwise behaves like the given one. */
export function warmFetch(
  warm: KeepWarm,
  fetch: GlobalFetch = (input, init) => globalThis.fetch(input, init),
  now = () => performance.now(),
): GlobalFetch {
  return async (input, init) => {
    const { url, method } = input instanceof Request ? input : { url: String(input), method: "GET" };
    if ((init?.method ?? method).toUpperCase() !== "GET") return fetch(input, init);
    const ticket = warm.requested(url);
    await ticket.ready;
    let answer: Response;
    try {
      answer = await fetch(input, init);
    } catch (error) {
      ticket.failed();
      throw error;
    }
    const firstByteMs = now();
    if (!answer.ok || answer.body === null) {
      ticket.failed();
      return answer;
    }
    let bytes = 0;
    const reader = answer.body.getReader();
    const body = new ReadableStream<Uint8Array>({
      async pull(to) {
        try {
          const { done, value } = await reader.read();
          if (done) {
            ticket.answered({ bytes, firstByteMs, endMs: now(), url: answer.url || undefined });
            return to.close();
          }
          bytes += value.byteLength;
          ticket.progress(bytes);
          to.enqueue(value);
        } catch (error) {
          ticket.failed();
          to.error(error);
        }
      },
      async cancel(why) {
        ticket.failed();
        await reader.cancel(why);
      },
    });
    const { status, statusText, headers } = answer;
    const reported = new Response(body, { status, statusText, headers });
    // A constructed response has no URL.
    Object.defineProperty(reported, "url", { value: answer.url });
    return reported;
  };
}
