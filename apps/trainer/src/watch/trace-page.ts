/** A page of a trace in the folder of a run. */
export const tracePage = async (_folder: string, _file: string): Promise<string | undefined> => undefined;
