# What remedy listen-again does, and its risk.

remedy-listen-again-text = Let { $tier } listen again at { $listener }, so that { $limit } may wait instead of { $from }: write { $to } for its backlog, since nginx listens again only where the value is another, and reload it.
remedy-listen-again-text-live = Call listen() again at { $listener } of { $tier } with { $to }, so that { $limit } may wait instead of { $from }. By hand only a new start does that.
remedy-listen-again-risk = Connections that wait stay. A longer queue helps only against bursts.
