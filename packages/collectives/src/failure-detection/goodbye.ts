// How long the orderly end of a connection may take, whoever is at the other end. What takes longer is cut off, and is
// no loss.

/** For the peer's goodbye after ours: one that lives, and whose thread is not computing, answers at once. */
export const goodbyeMilliseconds = 1000;

/** For what was written last to leave, where nothing is taken any more. */
export const farewellMilliseconds = 500;
