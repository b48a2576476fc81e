// A document of the API that a view shows.
import { useEffect, useState } from "preact/hooks";
import { get } from "./api";

export interface Asked<T> {
    document: T | null;
    failed: string | null;
}

/** A document that is read again whenever a key changes. */
export function useDocument<T>(path: string, keys: unknown[]): Asked<T> {
    const [state, setState] = useState<Asked<T>>({ document: null, failed: null });
    useEffect(() => {
        let isOver = false;
        get<T>(path).then(
            (document) => !isOver && setState({ document, failed: null }),
            (error: unknown) => !isOver && setState({ document: null, failed: error instanceof Error ? error.message : String(error) }),
        );
        return () => {
            isOver = true;
        };
    }, [path, ...keys]);
    return state;
}
