/** The page's resource timing: the protocol of connections, and room for our entries. */
export declare const isMultiplexed: (protocol: string | undefined) => boolean;
/** Protocol of the connection that a URL used; servers of other origins may hide it. */
export declare function protocolOf(url: string): string | undefined;
/** `undefined` if it has no origin. */
export declare function absolute(url: string): URL | undefined;
/** Enlarges the page's resource timing buffer by the number of our entries when it is full. */
export declare class Room {
    #private;
    /** Called before an entry of ours is made. */
    take(): void;
    end(): void;
}
