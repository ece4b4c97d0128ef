import ts from "typescript";

const isDeferred = (node: ts.Node): boolean => ts.isFunctionLike(node) || ts.isClassLike(node);

const isCall = (node: ts.Node): boolean => ts.isCallExpression(node) || ts.isNewExpression(node);

/**
 * Whether an expression other than a call may run code, such as a getter, so that a bundler does not remove the
 * expression.
 */
const mayCall = (node: ts.Node): boolean =>
  ts.isSpreadAssignment(node) ||
  ts.isSpreadElement(node) ||
  (ts.isPropertyAccessExpression(node) && !ts.isMetaProperty(node.expression)) || // `import.meta.url` has no getter
  ts.isElementAccessExpression(node);

/**
 * Whether `is` returns true for an expression or for any part that is evaluated together with it. Functions that only
 * run later are not searched.
 */
const holds = (node: ts.Node, is: (part: ts.Node) => boolean): boolean =>
  !isDeferred(node) && (is(node) || ts.forEachChild(node, (child) => holds(child, is) || undefined) === true);

/**
 * Marks each constant of a module as free of side effects, so that a bundler drops the constants that a program does
 * not use. `sideEffects: false` is not enough, because it applies to complete modules, and a package built into one
 * file is a single module. Only declarations of constants are changed.
 *
 * @param text TypeScript source of the module.
 * @returns the text with `@__PURE__` before each call in the initializer of a constant. Other code that may have side
 * effects is wrapped in a marked call.
 */
export const markPureConstants = (text: string, file: string): string => {
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true);
  const insertions: { readonly at: number; readonly text: string }[] = [];
  const markCalls = (node: ts.Node): void => {
    if (isDeferred(node)) return;
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
