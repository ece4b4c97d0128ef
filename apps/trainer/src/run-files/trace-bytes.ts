/** A trace of more bytes is not handed to a page: its text would be as long as a string can be. */
export const mostTraceBytes: number = 2 ** 27;
