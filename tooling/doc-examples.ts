import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import ts from "typescript";
import { codeBlocks } from "./markdown.ts";
import { repository } from "./repository.ts";

/** An example program in the doc comment of an export: a `ts` block of an `@example` tag. */
export interface DocExample {
  /** Name of the export with the comment, or of the export that has the commented member. */
  readonly name: string;
  /** File with the comment, relative to the repository root. */
  readonly file: string;
  /** Line number of the comment, starting at 1. */
  readonly line: number;
  readonly text: string;
}

/**
 * Function that returns the syntax tree of a module, and parses each module only once. Paths are relative to the
 * repository root.
 */
export type ModuleReader = (path: string) => ts.SourceFile;

export const moduleReader = (): ModuleReader => {
  const read = new Map<string, ts.SourceFile>();
  return (path) => {
    const known = read.get(path);
    if (known !== undefined) return known;
    const text = readFileSync(join(repository, path), "utf8");
    const source = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true);
    read.set(path, source);
    return source;
  };
};

interface Declaration {
  readonly name: string;
  readonly file: string;
  readonly node: ts.Statement;
}

const isExported = (node: ts.Statement): boolean =>
  ts.canHaveModifiers(node) && ts.getModifiers(node)?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword) === true;

const declaredNames = (node: ts.Statement): string[] => {
  if (ts.isVariableStatement(node))
    return node.declarationList.declarations.flatMap(({ name }) =>
      ts.isIdentifier(name)
        ? [name.text]
        : name.elements.flatMap((element) =>
            ts.isBindingElement(element) && ts.isIdentifier(element.name) ? [element.name.text] : [],
          ),
    );
  return ts.isFunctionDeclaration(node) ||
    ts.isClassDeclaration(node) ||
    ts.isInterfaceDeclaration(node) ||
    ts.isTypeAliasDeclaration(node)
    ? [node.name!.text]
    : [];
};

/** Returns the declarations that a module exports, including exports from other modules. */
export const exportedDeclarations = (file: string, read: ModuleReader): Declaration[] =>
  read(file).statements.flatMap((node): Declaration[] => {
    if (isExported(node)) return declaredNames(node).map((name) => ({ name, file, node }));
    if (!ts.isExportDeclaration(node) || node.moduleSpecifier === undefined) return [];
    const specifier = (node.moduleSpecifier as ts.StringLiteral).text;
    if (!specifier.startsWith(".")) return [];
    const all = exportedDeclarations(join(dirname(file), specifier), read);
    const { exportClause } = node;
    if (exportClause === undefined || !ts.isNamedExports(exportClause)) return all;
    return exportClause.elements.flatMap(({ name, propertyName }) =>
      all
        .filter((declaration) => declaration.name === (propertyName ?? name).text)
        .map((declaration) => ({ ...declaration, name: name.text })),
    );
  });

const withoutStars = (comment: string): string => comment.replaceAll(/^[ \t]*\* ?/gm, "");

/** Returns the programs in the doc comments of a declaration and of its members. */
export const examplesOf = ({ name, file, node }: Declaration): DocExample[] => {
  const source = node.getSourceFile();
  const examples: DocExample[] = [];
  const visit = (part: ts.Node): void => {
    for (const comment of ts.getJSDocCommentsAndTags(part).filter(ts.isJSDoc)) {
      if (comment.parent !== part) continue;
      const line = source.getLineAndCharacterOfPosition(comment.getStart()).line + 1;
      for (const tag of comment.tags ?? []) {
        if (tag.tagName.text !== "example") continue;
        for (const { language, text } of codeBlocks(withoutStars(tag.getText(source))))
          if (language === "ts") examples.push({ name, file, line, text });
      }
    }
    ts.forEachChild(part, visit);
  };
  visit(node);
  return examples;
};

/** Returns the identifiers that an example reads as values but does not declare. */
const freeNames = (source: ts.SourceFile): ReadonlySet<string> => {
  const names = new Set<string>();
  const visit = (node: ts.Node): void => {
    if (ts.isTypeNode(node) || ts.isImportDeclaration(node)) return;
    if (ts.isPropertyAccessExpression(node)) return visit(node.expression);
    if (ts.isPropertyAssignment(node)) return visit(node.initializer);
    if (ts.isIdentifier(node)) names.add(node.text);
    ts.forEachChild(node, visit);
  };
  visit(source);
  for (const statement of source.statements) for (const name of declaredNames(statement)) names.delete(name);
  return names;
};

/** Converts `import { a as b } from "m"` to a statement for a function body. Type imports are removed. */
const dynamicImport = (node: ts.ImportDeclaration): string => {
  const bindings = node.importClause?.namedBindings;
  const specifier = node.moduleSpecifier.getText();
  if (bindings === undefined || !ts.isNamedImports(bindings) || node.importClause!.name !== undefined)
    throw new Error(`an example may import only names in braces, not ${node.getText()}`);
  const names = bindings.elements
    .filter(({ isTypeOnly }) => !isTypeOnly)
    .map(({ name, propertyName }) => (propertyName === undefined ? name.text : `${propertyName.text}: ${name.text}`));
  return `const { ${names.join(", ")} } = await import(${specifier});`;
};

/**
 * Converts an example to the body of an async function with the parameter `console`.
 *
 * @param doors Exported names that examples may use without an import, by import path. If several paths export a name,
 * the first path is used.
 */
export const functionBody = (text: string, doors: ReadonlyMap<string, ReadonlySet<string>>): string => {
  const source = ts.createSourceFile("example.ts", text, ts.ScriptTarget.Latest, true);
  const imports = source.statements.filter(ts.isImportDeclaration);
  const free = new Set(freeNames(source));
  for (const node of imports) {
    const bindings = node.importClause?.namedBindings;
    if (bindings !== undefined && ts.isNamedImports(bindings))
      for (const { name } of bindings.elements) free.delete(name.text);
  }
  const lines: string[] = [];
  for (const [path, names] of doors) {
    const used = [...free].filter((name) => names.has(name));
    for (const name of used) free.delete(name);
    if (used.length > 0) lines.push(`const { ${used.join(", ")} } = await import(${JSON.stringify(path)});`);
  }
  lines.push(...imports.map(dynamicImport));
  const own = source.statements.filter((node) => !ts.isImportDeclaration(node));
  return [...lines, ...own.map((node) => node.getFullText())].join("\n");
};

/** Returns the expected output lines of an example, from the comments after its `console.log` calls. */
export const expectedLines = (text: string): string[] =>
  [...text.matchAll(/console\.log\(.*\);[ \t]*\/\/ (.*)$/gm)].map((match) => match[1]!);
