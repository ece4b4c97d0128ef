/** Printable ASCII. Texts of strangers are logged, so they must not contain line ends or control characters. */
export const printable: RegExp = /^[ -~]*$/;
