/**
 * Directed acyclic graph whose vertices may be merged if the graph stays acyclic. Maintains a topological order and
 * repairs it only between the two merged vertices (as in Pearce and Kelly's dynamic topological sort).
 */
export class ContractedGraph {
  /** Vertices in topological order; -1 at the position of a vertex that was merged into another vertex. */
  readonly order: number[];
  private readonly position: number[];
  private readonly owner: number[];
  private readonly contents: number[][];
  private readonly successors: readonly (readonly number[])[];

  /**
   * Creates the graph in which no vertices are merged.
   *
   * @param successors For each vertex, the vertices that depend on it. Vertex numbers must be in topological order.
   */
  constructor(successors: readonly (readonly number[])[]) {
    this.successors = successors;
    this.order = successors.map((_, vertex) => vertex);
    this.position = [...this.order];
    this.owner = [...this.order];
    this.contents = this.order.map((vertex) => [vertex]);
  }

  /** Returns the vertex that represents `vertex` after merges. */
  find(vertex: number): number {
    return this.owner[vertex]!;
  }

  /** Returns the original vertices that were merged into `vertex`, ascending. */
  members(vertex: number): readonly number[] {
    return this.contents[vertex]!;
  }

  /** Yields all vertices except `vertex` itself that depend on `vertex` after merges. A vertex may be repeated. */
  *after(vertex: number): Iterable<number> {
    for (const member of this.contents[vertex]!) {
      for (const next of this.successors[member]!) {
        const owner = this.owner[next]!;
        if (owner !== vertex) yield owner;
      }
    }
  }

  /**
   * Merges two vertices; returns the merged vertex, or `undefined` if a path between the two vertices leads through a
   * third vertex. Cost: at most O(vertices between `a` and `b` in the order, and their edges).
   */
  merge(a: number, b: number): number | undefined {
    const [first, last] = this.position[a]! < this.position[b]! ? [a, b] : [b, a];
    const end = this.position[last]!;
    const reached = new Set<number>();
    const stack = [first];
    for (let vertex = stack.pop(); vertex !== undefined; vertex = stack.pop()) {
      for (const next of this.after(vertex)) {
        if (next === last) {
          if (vertex !== first) return undefined;
        } else if (this.position[next]! < end && !reached.has(next)) {
          reached.add(next);
          stack.push(next);
        }
      }
    }
    const begin = this.position[first]!;
    const window = this.order
      .slice(begin, end + 1)
      .filter((vertex) => vertex !== first && vertex !== last && vertex !== -1);
    const repaired = [
      ...window.filter((vertex) => !reached.has(vertex)),
      first,
      ...window.filter((vertex) => reached.has(vertex)),
    ];
    for (let i = begin; i <= end; i++) {
      const vertex = repaired[i - begin] ?? -1;
      this.order[i] = vertex;
      if (vertex !== -1) this.position[vertex] = i;
    }
    for (const member of this.contents[last]!) this.owner[member] = first;
    this.contents[first] = [...this.contents[first]!, ...this.contents[last]!].sort((x, y) => x - y);
    this.contents[last] = [];
    return first;
  }
}
