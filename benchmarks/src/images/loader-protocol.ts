/** Line of JSON that a loader prints for each epoch. */
export interface LoadedEpoch {
  readonly seconds: number;
  readonly images: number;
  /** Mean over all pixels of the epoch, 0 to 255; shows whether two loaders decoded the same images. */
  readonly meanPixel: number;
  /** Sum of all labels. */
  readonly labels: number;
}

/** Options of a loader, in the order of its command-line arguments. */
export interface LoaderOptions {
  readonly folder: string;
  readonly epochs: number;
  /** Number of rows, and of columns, to which images are resized. */
  readonly side: number;
  readonly batchSize: number;
}

/** Formats the options as arguments of a command line. */
export const loaderWords = ({ folder, epochs, side, batchSize }: LoaderOptions): string[] => [
  folder,
  String(epochs),
  String(side),
  String(batchSize),
];

/** Parses the options from the arguments of a program. */
export const loaderOptions = (argv: readonly string[]): LoaderOptions => {
  const [folder, ...numbers] = argv.slice(2);
  const [epochs, side, batchSize] = numbers.map(Number) as [number, number, number];
  return { folder: folder!, epochs, side, batchSize };
};
