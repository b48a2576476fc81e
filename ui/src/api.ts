// Reads the API and follows its events. Everything comes from the server of the page.
import type { About, Freshness, Look, Sample, Series, State } from "./types";

/** Why an answer is not there, as the server tells it. */
export class ApiError extends Error {}

/** A JSON document. */
export async function get<T>(path: string): Promise<T> {
    const answer = await fetch(path, { credentials: "same-origin", headers: { accept: "application/json" } });
    const text = await answer.text();
    let document: unknown;
    try {
        document = JSON.parse(text);
    } catch {
        throw new ApiError(`${path}: the answer is no JSON (status ${answer.status})`);
    }
    if (!answer.ok) {
        const why = (document as { error?: unknown }).error;
        throw new ApiError(typeof why === "string" ? why : `${path}: status ${answer.status}`);
    }
    return document as T;
}

/** What the last look at the path of each server found. */
export const looks = () => get<Record<string, Look>>("api/v1/looks");
export const about = () => get<About>("api/v1/about");
export const series = async (query: string) => (await get<Series>(`api/v1/series?${query}`)).samples;

export interface Followed {
    sample(sample: Sample): void;
    state(state: State): void;
    /** How old the newest second is; also while none comes. */
    age(freshness: Freshness): void;
    /** The connection is there or not. */
    connected(is: boolean): void;
}

/** Follows the events of each second until the returned function is called. A browser connects again by itself. */
export function follow(followed: Followed): () => void {
    const events = new EventSource("api/v1/live");
    events.addEventListener("open", () => followed.connected(true));
    events.addEventListener("error", () => followed.connected(false));
    events.addEventListener("sample", (event) => followed.sample(JSON.parse(event.data) as Sample));
    events.addEventListener("state", (event) => followed.state(JSON.parse(event.data) as State));
    events.addEventListener("age", (event) => followed.age(JSON.parse(event.data) as Freshness));
    return () => events.close();
}
