export declare const originOf: (url: string) => string;
/** Over HTTP/1.1 a browser has a connection for each simultaneous request, and may use any of
 * them for a later one: each must be warm. */
export declare class Origins {
    #private;
    requested(url: string): void;
    /** `from`: the URL after redirects. */
    answered(url: string, from: string): void;
    closed(url: string): void;
    /** A long pause has ended. */
    paused(): void;
    /** Each server's last URL and number of connections. */
    connections(): {
        url: string;
        most: number;
    }[];
}
