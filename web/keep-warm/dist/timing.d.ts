/** The page's resource timing: what it tells, and room for what is added to it. */
export declare const isMultiplexed: (protocol: string | undefined) => boolean;
/** Of the connection that a URL came over; servers of other origins may not tell. */
export declare function protocolOf(url: string): string | undefined;
/** `undefined` where it has no origin. */
export declare function absolute(url: string): URL | undefined;
/** Gives the page's resource timing as many entries more as are ours, where it is full. */
export declare class Room {
    #private;
    /** An entry of ours is about to be made. */
    take(): void;
    end(): void;
}
