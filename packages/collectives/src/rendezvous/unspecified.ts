/** Whether a host is the unspecified address, which means all addresses of a machine. */
export const isUnspecified = (host: string): boolean => host === "0.0.0.0" || host === "::";
