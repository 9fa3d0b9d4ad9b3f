export declare const originOf: (url: string) => string;
/** Over HTTP/1.1 a browser has a connection for each request that is open at once, and
 * gives a later one any of them: each must be warm. */
export declare class Origins {
    #private;
    requested(url: string): void;
    /** `from`: where it came from, in the end. */
    answered(url: string, from: string): void;
    closed(url: string): void;
    /** A long pause has ended. */
    paused(): void;
    /** Each server's last URL, and how many connections it has. */
    connections(): {
        url: string;
        most: number;
    }[];
}
