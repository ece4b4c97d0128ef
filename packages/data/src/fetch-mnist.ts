import { DataError } from "./errors.ts";
import type { NamedBytes } from "./images.ts";
import { mnistFiles, mnistRecords } from "./mnist.ts";
import type { Records } from "./records.ts";

const cure = "serve the four IDX files of MNIST in that folder";

const fetchBytes = async (url: string): Promise<NamedBytes> => {
  let response: Response;
  try {
    response = await fetch(url);
  } catch (cause) {
    throw new DataError(
      `${url} cannot be fetched (${cause instanceof Error ? cause.message : String(cause)}); ${cure}`,
      { cause },
    );
  }
  if (!response.ok) throw new DataError(`${url} returned HTTP status ${response.status} instead of 200; ${cure}`);
  return { name: url, bytes: new Uint8Array(await response.arrayBuffer()) };
};

/**
 * Fetches the handwritten digits of MNIST: four IDX files, in parallel. The server may provide shortened files that
 * contain only the first entries.
 *
 * @param folder URL of the folder with the files; ends with a slash.
 * @throws DataError if a file is missing, truncated or altered.
 * @example const { train, test } = await fetchMnist(new URL("digits/", document.baseURI).href);
 */
export const fetchMnist = async (folder: string): Promise<{ readonly train: Records; readonly test: Records }> => {
  const fetchFile = (name: string): Promise<NamedBytes> => fetchBytes(new URL(name, folder).href);
  const { train, test } = mnistFiles;
  const files = [train.images, train.labels, test.images, test.labels].map(fetchFile);
  const [trainImages, trainLabels, testImages, testLabels] = (await Promise.all(files)) as [
    NamedBytes,
    NamedBytes,
    NamedBytes,
    NamedBytes,
  ];
  return { train: mnistRecords(trainImages, trainLabels), test: mnistRecords(testImages, testLabels) };
};
