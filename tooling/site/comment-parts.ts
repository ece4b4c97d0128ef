import { type Comment, CommentTag, type ProjectReflection, ReflectionKind } from "typedoc";

const parts = /\n(?=(?:Cost|Source): )/;

/**
 * Converts `Cost: …` and `Source: …` lines at the end of doc comments to separate tags. TypeDoc would treat these lines
 * as part of the preceding tag, or as code of an example.
 */
export const takeCostAndSource = (comment: Comment): void => {
  comment.blockTags = comment.blockTags.flatMap((tag) => {
    const found: CommentTag[] = [];
    let name: "@cost" | "@source" | undefined;
    const take = (text: string): void => {
      name = text.startsWith("Cost") ? "@cost" : "@source";
      found.push(new CommentTag(name, [{ kind: "text", text: text.slice(text.indexOf(":") + 2) }]));
    };
    const content = tag.content.flatMap((part) => {
      const [own = "", ...others] = part.text.split(parts);
      // Text after a cost or source line is part of the cost or source.
      if (name !== undefined) found.at(-1)!.content.push({ ...part, text: own } as never);
      const isFirst = name === undefined;
      const isExample = part.kind === "code" && part.text.startsWith("```");
      others.forEach((text) => take(isExample ? text.replace(/\n```$/, "") : text));
      if (!isFirst) return [];
      return [{ ...part, text: isExample && others.length > 0 ? `${own}\n\`\`\`` : own }];
    });
    tag.content = content as typeof tag.content;
    return [tag, ...found];
  });
};

/** Gives destructured parameters, which have no name in the code, the name `options`. */
export const nameOptions = (project: ProjectReflection): void => {
  for (const parameter of project.getReflectionsByKind(ReflectionKind.Parameter))
    if (parameter.name === "__namedParameters") parameter.name = "options";
};
