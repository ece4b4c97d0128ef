/** Maximum size in bytes of a trace sent to a page. Larger text would exceed the maximum string length. */
export const maxTraceBytes: number = 2 ** 27;
