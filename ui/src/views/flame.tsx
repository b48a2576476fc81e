// What used the CPUs during an incident, against before, as a flame graph.
import { useDocument } from "../document";
import { Report } from "../report/report";
import type { ReportPage } from "../report/types";

export function Flamed({ id }: { id: number }) {
    const { document, failed } = useDocument<ReportPage>(`api/v1/incidents/${id}/flame`, []);
    if (failed) return <p class="verdict unknown">{failed}</p>;
    if (!document) return <p class="absent">Reading the profile.</p>;
    return (
        <>
            <p class="facts">
                <a href={`#/incidents/${id}`}>{document.subject}</a>
            </p>
            <Report page={document} isWithin />
        </>
    );
}
