/** Whether a host is no address but all of a machine's. */
export const isUnspecified = (host: string): boolean => host === "0.0.0.0" || host === "::";
