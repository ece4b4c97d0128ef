import { existsSync } from "node:fs";
import { basename, dirname, join, relative, resolve } from "node:path";
import { tokenizerFile } from "@skein/data/node";
import type { Config } from "@skein/pretrained";
import { stringify } from "yaml";
import { causalKinds } from "../generate/text-model.ts";
import { readPreprocessor } from "../pretrained/preprocessor.ts";

/** Returns a path relative to `folder`, for a job file in that folder. */
const relativePath = (folder: string, path: string): string => {
  const short = relative(folder, resolve(path)) || ".";
  return short.startsWith(".") ? short : `./${short}`;
};

/**
 * Parts of an imported job that depend on the kind of training data: the data section, the setting `head` of the model,
 * and a one-line hint for the user.
 */
interface Learning {
  readonly data: object;
  readonly head?: "new";
  readonly hint: string;
}

const textLearning = (place: string, folder: string): Learning => ({
  data: {
    kind: "text",
    file: "./text.txt",
    ...(existsSync(join(place, tokenizerFile)) && { tokenizer: folder }),
    window: 128,
  },
  hint: "put your text into ./text.txt, or name another file",
});

/** Returns the setting `head: new`, unless the checkpoint already has a classification head. */
const needsHead = ({ architectures }: Config): { readonly head?: "new" } =>
  Array.isArray(architectures) && !String(architectures[0]).endsWith("Classification") ? { head: "new" } : {};

const otherClasses = "model.head: new is for classes other than those of its config.json";

const defaultImageSize = 224;

const imageLearning = async (place: string, config: Config): Promise<Learning> => {
  const preprocessor = await readPreprocessor(place, config["model_type"]);
  return {
    data: {
      kind: "image-folder",
      folder: "./images",
      size: config["image_size"] ?? preprocessor?.size ?? defaultImageSize,
      ...(config["num_channels"] === 1 && { channels: 1 }),
    },
    ...needsHead(config),
    hint: `put images into ./images/train/<class> and ./images/test/<class>, or name another folder; ${otherClasses}`,
  };
};

const tokenLearning = (config: Config): Learning => ({
  data: { kind: "numpy", file: "./tokens.npz" },
  ...needsHead(config),
  hint: `put x_train, tokens of a text in each row, and y_train, its class, into ./tokens.npz; ${otherClasses}`,
});

const learningOf = async (place: string, folder: string, config: Config): Promise<Learning> => {
  const kind = String(config["model_type"]);
  if (causalKinds.includes(kind)) return textLearning(place, folder);
  return kind === "bert" ? tokenLearning(config) : imageLearning(place, config);
};

/**
 * Returns the text of a job file that trains the checkpoint in the folder `place`: a language model on text, an image
 * classifier on a folder of images, or BERT on tokens with classes.
 *
 * @param output path of the job file. Paths in the job are relative to the folder of the job file.
 * @throws PretrainedError if the checkpoint's image preprocessing is not supported.
 */
export const jobTextOf = async (place: string, output: string, config: Config): Promise<string> => {
  const folder = relativePath(dirname(resolve(output)), place);
  const { data, head, hint } = await learningOf(place, folder, config);
  const name = basename(resolve(place))
    .replaceAll(/[^A-Za-z0-9._-]/g, "-")
    .replace(/^[^A-Za-z0-9]+/, "");
  const job = {
    name: name || "imported",
    ranks: 1,
    batch: 8,
    steps: 1000,
    data,
    model: { kind: "pretrained", folder, ...(head && { head }) },
    optimizer: { kind: "adamw" },
    learningRate: { peak: 0.0001, warmupSteps: 100, decay: "cosine" },
    clipNorm: 1,
    checkpoint: { everySteps: 200 },
  };
  return `# Trains ${place.replaceAll(/\p{C}/gu, "?")}; ${hint}.\n${stringify(job)}`;
};
