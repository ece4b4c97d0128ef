/**
 * Version of what processes say to each other. The major number stands in every frame's header; two that differ cannot
 * read each other. A higher minor number only adds what who does not know it can leave out: fields of handshake
 * messages, and frames that are sent once both sides have said that they know them.
 */
export const protocolVersion = { major: 2, minor: 0 } as const;

/**
 * The minor version that both sides of a connection speak: the lower one of two neighbours. Undefined where they are
 * further apart.
 */
export const agreeMinor = (own: number, peer: number): number | undefined =>
  Math.abs(own - peer) <= 1 ? Math.min(own, peer) : undefined;
