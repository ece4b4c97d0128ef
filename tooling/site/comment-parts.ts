import { type Comment, CommentTag, type ProjectReflection, ReflectionKind } from "typedoc";

const parts = /\n(?=(?:Cost|Source): )/;

/**
 * Our doc comments end with `Cost: …` and `Source: …`, each in a line of its own, below whatever tag stands before.
 * TypeDoc takes them for a part of that tag, and of an example for code: make them parts of their own.
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
      // What follows a cost or a source belongs to it.
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

/** Options that are taken apart where they come in have no name in the code: call them `options`. */
export const nameOptions = (project: ProjectReflection): void => {
  for (const parameter of project.getReflectionsByKind(ReflectionKind.Parameter))
    if (parameter.name === "__namedParameters") parameter.name = "options";
};
