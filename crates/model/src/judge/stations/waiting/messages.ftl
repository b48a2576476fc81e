# Station waiting: its states, findings and evidence, and what brings them about.

state-waiting-ok = { $number } of { $under_way } requests waited inside { $tier } on average, for nothing that was seen.
state-waiting-most = { $number } of { $under_way } requests waited inside { $tier } on average, and for each other.

finding-waits-inside-title = { $number } of { $under_way } requests wait inside { $tier }
finding-waits-inside-title-calls = { $number } of { $under_way } requests wait inside { $tier }, which has { $connections } { $connections ->
    [one] connection
   *[other] connections
} to { $remote } and uses all of them all the time
finding-waits-inside-explanation-calls = { $tier } has read these requests and does not work on them: they wait until one of its { $connections } connections to { $remote } is free. None more is opened, so that their number is most likely a limit: maxconn or max_conns of a proxy, the size of a program's connection pool. The server behind has no more than that to do.
finding-waits-inside-explanation-alone = { $tier } has read these requests and neither computes nor waits for a server that is seen. One request alone is answered much sooner, so that they wait for each other: for a lock, a limit of the program's own, a connection of a pool. What they wait for cannot be seen from outside.
finding-waits-inside-explanation-even = { $tier } has read these requests and neither computes nor waits for a server that is seen. Their answers come more evenly than they would if each waited for a time or an event of its own: something lets them pass one by one, such as a lock, a limit of the program's own, or a pool. What they wait for cannot be seen from outside.

evidence-waits-inside = Between { $low } and { $high } of { $under_way } requests under way had been read by { $tier } and had no answer, while no thread of it computed for them or was ready to, and none of its connections waited for them.
evidence-waits-inside-calls = { $tier } had { $connections } { $connections ->
    [one] connection
   *[other] connections
} to { $remote }; on average { $used } of them waited for an answer.
evidence-waits-inside-alone = Half of the requests took { $loaded } ms or more, where one alone took { $alone } ms.
evidence-waits-inside-even = The ages of the requests in { $tier } are spread more evenly than chance spreads them in thirty-nine of forty cases (Watson's U²).
evidence-waits-inside-bound = Without that wait at most { $low } to { $high } times as many requests could pass, and no more than the next limit lets through.
evidence-waits-inside-bound-exact = Without that wait at most { $high } times as many requests could pass, and no more than the next limit lets through.

coupling-inside-found = A station found what holds requests back, and those that stand inside the program may wait for just that. With nothing else found the program would be the place to look.
coupling-inside-cores = The cores are all busy, so that whatever the requests wait for inside the program comes to run too late. With cores idle the program would be the place to look.
coupling-inside-link = The link is full, so that answers cannot leave, and what stands inside the program may wait for that. With room on the link the program would be the place to look.
