import ts from "typescript";

const isOfAnotherTime = (node: ts.Node): boolean => ts.isFunctionLike(node) || ts.isClassLike(node);

const isCall = (node: ts.Node): boolean => ts.isCallExpression(node) || ts.isNewExpression(node);

/** What may run code, so that a bundler keeps it, though it is no call: a getter may stand behind it. */
const mayCall = (node: ts.Node): boolean =>
  ts.isSpreadAssignment(node) ||
  ts.isSpreadElement(node) ||
  (ts.isPropertyAccessExpression(node) && !ts.isMetaProperty(node.expression)) || // `import.meta.url` is plain
  ts.isElementAccessExpression(node);

/** Whether `is` holds for a part of an expression that runs with it. */
const holds = (node: ts.Node, is: (part: ts.Node) => boolean): boolean =>
  !isOfAnotherTime(node) && (is(node) || ts.forEachChild(node, (child) => holds(child, is) || undefined) === true);

/**
 * Say of every constant of a module that making it has no effect, so that a bundler drops those that a program does not
 * use. `sideEffects: false` says so of whole modules, but a package that is built into one file has only one.
 * Statements that are no constants are kept as they are.
 *
 * @param text TypeScript.
 * @returns the text with `@__PURE__` before each call that a constant is made by; what else might run code stands in
 * such a call.
 */
export const markPureConstants = (text: string, file: string): string => {
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true);
  const insertions: { readonly at: number; readonly text: string }[] = [];
  const markCalls = (node: ts.Node): void => {
    if (isOfAnotherTime(node)) return;
    if (isCall(node)) insertions.push({ at: node.getStart(source), text: "/* @__PURE__ */ " });
    ts.forEachChild(node, markCalls);
  };
  for (const statement of source.statements) {
    if (!ts.isVariableStatement(statement)) continue;
    for (const { name, initializer } of statement.declarationList.declarations) {
      if (initializer === undefined || !ts.isIdentifier(name) || holds(initializer, ts.isAwaitExpression)) continue;
      if (isCall(initializer) && !holds(initializer, (part) => part !== initializer && mayCall(part)))
        markCalls(initializer);
      else if (holds(initializer, (part) => isCall(part) || mayCall(part))) {
        insertions.push(
          { at: initializer.getStart(source), text: "/* @__PURE__ */ (() => (" },
          { at: initializer.getEnd(), text: "))()" },
        );
      }
    }
  }
  return insertions
    .toSorted((a, b) => b.at - a.at)
    .reduce((marked, { at, text: mark }) => marked.slice(0, at) + mark + marked.slice(at), text);
};
