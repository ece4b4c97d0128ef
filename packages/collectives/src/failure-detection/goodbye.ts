// Time limits for the orderly end of a connection. A connection that takes longer is cut off without counting as a
// loss.

/** For the peer's goodbye after this side's: a live peer answers at once, unless its thread is computing. */
export const goodbyeMilliseconds = 1000;

/** For the last written bytes to be sent when nothing more is read. */
export const farewellMilliseconds = 500;
