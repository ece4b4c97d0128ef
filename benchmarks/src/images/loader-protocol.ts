/** What a loader prints of each epoch, a line of JSON. */
export interface LoadedEpoch {
  readonly seconds: number;
  readonly images: number;
  /** Mean over all pixels of the epoch, 0 to 255: what shows that images were decoded, and which. */
  readonly meanPixel: number;
  /** Sum of all labels. */
  readonly labels: number;
}

/** What a loader is started with, in this order. */
export interface LoaderOptions {
  readonly folder: string;
  readonly epochs: number;
  /** Rows and columns that images are brought to. */
  readonly side: number;
  readonly batchSize: number;
}

/** The options as words of a command line. */
export const loaderWords = ({ folder, epochs, side, batchSize }: LoaderOptions): string[] => [
  folder,
  String(epochs),
  String(side),
  String(batchSize),
];

/** The options in the words that a program was started with. */
export const loaderOptions = (argv: readonly string[]): LoaderOptions => {
  const [folder, ...numbers] = argv.slice(2);
  const [epochs, side, batchSize] = numbers.map(Number) as [number, number, number];
  return { folder: folder!, epochs, side, batchSize };
};
