/** What a stranger says stands in our log: no line ends, no control characters. */
export const printable: RegExp = /^[ -~]*$/;
