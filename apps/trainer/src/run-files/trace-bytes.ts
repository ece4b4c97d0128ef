/** Maximum size of a trace that is sent to a page, bytes: a larger text would exceed the maximum string length. */
export const maxTraceBytes: number = 2 ** 27;
