// Time limits for the orderly end of a connection. A connection that takes longer is closed without counting as a loss.

/**
 * Maximum time to wait for the peer's goodbye after sending a goodbye. A live peer responds immediately, unless its
 * thread is computing.
 */
export const goodbyeMilliseconds = 1000;

/** Maximum time to flush pending writes after this end of the connection has stopped reading. */
export const farewellMilliseconds = 500;
