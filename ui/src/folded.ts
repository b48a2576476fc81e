// Folded stacks ("a;b;c 12" a line) as a tree of frames, with what each had before.

export interface Frame {
    name: string;
    /** Samples in it and in what it called. */
    during: number;
    before: number;
    children: Frame[];
    depth: number;
    /** Where it begins, in samples of `during` from the left. */
    start: number;
}

interface Growing {
    name: string;
    during: number;
    before: number;
    children: Map<string, Growing>;
}

function grow(root: Growing, text: string, which: "during" | "before"): void {
    for (const line of text.split("\n")) {
        const at = line.lastIndexOf(" ");
        const count = Number(line.slice(at + 1));
        if (at <= 0 || !Number.isFinite(count) || count <= 0) continue;
        root[which] += count;
        let frame = root;
        for (const name of line.slice(0, at).split(";")) {
            let child = frame.children.get(name);
            if (!child) {
                child = { name, during: 0, before: 0, children: new Map() };
                frame.children.set(name, child);
            }
            child[which] += count;
            frame = child;
        }
    }
}

/** The tree of two profiles. Frames that only the earlier one has are left out: they have no width. */
export function tree(during: string, before: string | null): Frame {
    const root: Growing = { name: "all", during: 0, before: 0, children: new Map() };
    grow(root, during, "during");
    if (before) grow(root, before, "before");
    const settled = (from: Growing, depth: number, start: number): Frame => {
        let next = start;
        const children = [...from.children.values()]
            .filter((child) => child.during > 0)
            .sort((a, b) => (a.name < b.name ? -1 : 1))
            .map((child) => {
                const frame = settled(child, depth + 1, next);
                next += child.during;
                return frame;
            });
        return { name: from.name, during: from.during, before: from.before, children, depth, start };
    };
    return settled(root, 0, 0);
}

/** All frames of at least this many samples below a frame, itself included. */
export function wide(frame: Frame, least: number): Frame[] {
    if (frame.during < least) return [];
    return [frame, ...frame.children.flatMap((child) => wide(child, least))];
}

/** Samples in frames whose name has these letters; a frame within another one counts once. */
export function matching(frame: Frame, letters: string): number {
    if (letters === "") return 0;
    if (frame.depth > 0 && frame.name.toLowerCase().includes(letters)) return frame.during;
    return frame.children.reduce((sum, child) => sum + matching(child, letters), 0);
}

/** How much larger its share is than before, -1 to 1; null without an earlier profile. */
export function change(frame: Frame, root: Frame): number | null {
    if (root.before === 0 || root.during === 0) return null;
    return frame.during / root.during - frame.before / root.before;
}
