/**
 * Matches printable ASCII text. Unauthenticated input is logged, so it must not contain line ends or control
 * characters.
 */
export const printable: RegExp = /^[ -~]*$/;
