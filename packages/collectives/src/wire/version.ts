/**
 * Protocol version. The major number is in every frame's header; processes with different major numbers cannot read
 * each other's frames. A higher minor number adds only features that older versions can ignore: fields of handshake
 * messages, and frames that are sent only if both processes support the frames.
 */
export const protocolVersion = { major: 2, minor: 0 } as const;

/**
 * Returns the minor version of a connection: the lower minor version if the two versions are equal or adjacent,
 * otherwise undefined.
 */
export const agreeMinor = (own: number, peer: number): number | undefined =>
  Math.abs(own - peer) <= 1 ? Math.min(own, peer) : undefined;
