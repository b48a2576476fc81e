# What remedy listen-again does, and its risk.

remedy-listen-again-text = Make { $tier } listen again at { $listener }, so that { $limit } connections may wait instead of { $from }: set its backlog to { $to }, because nginx listens again only if the value changes, and reload it.
remedy-listen-again-text-live = Call listen() again at { $listener } of { $tier } with { $to }, so that { $limit } connections may wait instead of { $from }. By hand, only a restart does this.
remedy-listen-again-risk = Waiting connections are not lost. A longer queue helps only against bursts.
