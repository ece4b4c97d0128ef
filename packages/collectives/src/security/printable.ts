/** Printable ASCII. Unauthenticated input is logged, so they must not contain line ends or control characters. */
export const printable: RegExp = /^[ -~]*$/;
