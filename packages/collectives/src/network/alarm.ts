/** What a clock and its alarm thread share: how often an alarm was armed, when it is due, how often it fired. */
export const alarmWords = 3;
export const armedAt = 0;
/** In microseconds of the time that all threads share, the last 32 bits. */
export const dueAt = 1;
export const firedAt = 2;
