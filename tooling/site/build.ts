import { rmSync } from "node:fs";
import { join, relative } from "node:path";
import {
  Application,
  Converter,
  type DeclarationReflection,
  DocumentReflection,
  KindRouter,
  LogLevel,
  Logger,
  MinimalSourceFile,
  normalizePath,
  type ProjectReflection,
  type Reflection,
  ReflectionKind,
  type TypeDocOptions,
} from "typedoc";
import { repository } from "../repository.ts";
import { nameOptions, takeCostAndSource } from "./comment-parts.ts";
import { type Door, publishedDoors } from "./doors.ts";
import { handWrittenPages, landingPage, pageText } from "./pages.ts";

/** Output folder of the site. The site can be opened locally or copied to a web server. */
export const siteFolder: string = join(repository, "dist/site");

/** Problems found while the site is built. */
export interface SiteBuild {
  /** Warnings of TypeDoc, such as broken links, tags without effect, and types in a signature that are not exported. */
  readonly warnings: readonly string[];
  /**
   * Names of exports, such as `@skein/data/node.loadText`, for which neither the export nor each of its members has a
   * doc comment.
   */
  readonly undocumented: readonly string[];
}

/** Collects TypeDoc's warnings, so that they are reported together. */
class WarningCollector extends Logger {
  readonly lines: string[] = [];
  override log(message: string, level: LogLevel): void {
    super.log(message, level);
    if (level >= LogLevel.Warn) this.lines.push(message);
  }
}

/** Gives each hand-written page the path of its source file: docs/guides/x.md becomes guides/x.html. */
class FilePathRouter extends KindRouter {
  override getIdealBaseName(reflection: Reflection): string {
    const file = reflection.isDocument() ? reflection.project.files.getReflectionPath(reflection) : undefined;
    if (file === undefined) return super.getIdealBaseName(reflection);
    const path = relative(repository, file).replace(/\.md$/, "");
    return path.startsWith("docs/")
      ? path.replace("docs/", "").replace(/README$/, "overview")
      : path.replace(/\/README$/, "");
  }
}

/** Removes the title of a page, because the page layout already shows the title. */
const withoutTitle = (text: string): string => text.replace(/^# .*\n+/, "");

/** Names each module by its import path, and attaches the README of its package. */
const nameModules = (app: Application, project: ProjectReflection, doors: readonly Door[]): void => {
  const byFile = new Map(doors.map((door) => [normalizePath(join(repository, door.file)), door]));
  for (const module of project.getChildrenByKind(ReflectionKind.Module)) {
    const door = byFile.get(normalizePath(module.sources?.[0]?.fullFileName ?? ""));
    if (door === undefined) throw new Error(`the module ${module.name} is not an export of any package`);
    module.name = door.name;
    const readme = join(door.folder, "README.md");
    if (!door.folder.startsWith("packages/") || module.readme !== undefined) continue;
    // If a package has several import paths, the README is attached to the first path.
    if (doors.find(({ folder }) => folder === door.folder) !== door) continue;
    const path = normalizePath(join(repository, readme));
    project.files.registerReflectionPath(path, module);
    module.readme = app.converter.parseRawComment(
      new MinimalSourceFile(withoutTitle(pageText(readme)), path),
      project.files,
    ).content;
  }
};

const addPages = (app: Application, project: ProjectReflection): void => {
  for (const { path, title, group } of handWrittenPages()) {
    const file = normalizePath(join(repository, path));
    const { content } = app.converter.parseRawComment(new MinimalSourceFile(pageText(path), file), project.files);
    const page = new DocumentReflection(title, project, content, { group });
    project.addChild(page);
    project.registerReflection(page, undefined, file);
    app.converter.trigger(Converter.EVENT_CREATE_DOCUMENT, undefined as never, page);
  }
  const file = normalizePath(join(repository, landingPage));
  project.files.registerReflectionPath(file, project);
  project.readme = app.converter.parseRawComment(
    new MinimalSourceFile(withoutTitle(pageText(landingPage)), file),
    project.files,
  ).content;
};

const hasOwnComment = (reflection: DeclarationReflection): boolean =>
  reflection.hasComment() || reflection.getAllSignatures().some((signature) => signature.hasComment());

/** Whether an export has a doc comment or, for a type such as function options, each member has a doc comment. */
const isDocumented = (reflection: DeclarationReflection): boolean => {
  if (hasOwnComment(reflection)) return true;
  const declaration = reflection.type?.type === "reflection" ? reflection.type.declaration : reflection;
  const members = declaration.children ?? [];
  return members.length > 0 && members.every((member) => member.isReference() || hasOwnComment(member));
};

const exported =
  ReflectionKind.Class |
  ReflectionKind.Function |
  ReflectionKind.Interface |
  ReflectionKind.TypeAlias |
  ReflectionKind.Variable;

const withoutComment = (project: ProjectReflection): string[] =>
  project
    .getReflectionsByKind(exported)
    .filter((reflection) => reflection.isDeclaration() && reflection.parent?.kind === ReflectionKind.Module)
    .filter((reflection) => !isDocumented(reflection as DeclarationReflection))
    .map((reflection) => reflection.getFullName())
    .toSorted();

/**
 * Builds the site: the reference of all package exports, from doc comments, and all hand-written pages. Types are not
 * checked, because `tsc` checks types.
 *
 * @throws Error if TypeDoc cannot read the sources.
 */
export const buildSite = async (out: string = siteFolder): Promise<SiteBuild> => {
  const doors = publishedDoors();
  const logger = new WarningCollector();
  const app = await Application.bootstrap();
  app.renderer.defineRouter("files", FilePathRouter);
  const options: TypeDocOptions = {
    name: "Skein",
    entryPoints: doors.map(({ file }) => join(repository, file)),
    tsconfig: join(repository, "tsconfig.json"),
    basePath: repository,
    displayBasePath: repository,
    skipErrorChecking: true,
    excludeInternal: true,
    excludePrivate: true,
    readme: "none",
    router: "files",
    // Git is disabled, so that a copy of the sources builds the same pages.
    disableGit: true,
    gitRevision: "main",
    sourceLinkTemplate: "https://github.com/skein-train/skein/blob/{gitRevision}/{path}#L{line}",
    validation: { invalidLink: true, invalidPath: true, notDocumented: false, notExported: false },
    customCss: join(import.meta.dirname, "site.css"),
    favicon: join(import.meta.dirname, "favicon.svg"),
    navigation: { includeGroups: true, includeCategories: false, includeFolders: true },
    groupOrder: ["Guides", "Command line", "Modules", "Reading on", "Benchmarks", "*"],
    navigationLinks: { GitHub: "https://github.com/skein-train/skein" },
    searchInDocuments: true,
    sort: ["source-order"],
    logLevel: "Warn",
  };
  for (const [name, value] of Object.entries(options))
    app.options.setValue(name as keyof TypeDocOptions, value as never);
  app.logger = logger;
  app.converter.on(Converter.EVENT_RESOLVE_BEGIN, (context) => {
    nameModules(app, context.project, doors);
    addPages(app, context.project);
    for (const { comment } of Object.values(context.project.reflections)) if (comment) takeCostAndSource(comment);
  });
  // Names are set only after this event, because TypeDoc matches `@param` tags with unnamed parameters before the
  // event.
  app.converter.on(Converter.EVENT_RESOLVE_END, (context) => nameOptions(context.project));
  const project = await app.convert();
  if (project === undefined) throw new Error(`the site cannot be built:\n${logger.lines.join("\n")}`);
  app.validate(project);
  rmSync(out, { recursive: true, force: true });
  await app.generateDocs(project, out);
  return { warnings: logger.lines, undocumented: withoutComment(project) };
};
