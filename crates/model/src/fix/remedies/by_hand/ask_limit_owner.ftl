# What remedy ask-limit-owner does, and its risk.

remedy-ask-limit-owner-text = Ask whoever set the limit at { $place } whether it is meant for this traffic. If not, raise the rate of zone { $zone } ({ $zone_place }), or exempt this address: requests whose key is empty are not counted.
remedy-ask-limit-owner-text-connections = Ask whoever set the limit at { $place } whether it is meant for this traffic. If not, raise the number, or exempt this address: connections whose key is empty are not counted.
remedy-ask-limit-owner-text-pace = Ask whoever set the limit at { $place } whether it is meant for this traffic. If not, raise it, or set it to 0 for these responses (limit_rate 0;).
remedy-ask-limit-owner-text-rule = Ask whoever wrote the rule at { $place } whether it is meant for this traffic. If not, raise the number in its condition, or exempt this address.
remedy-ask-limit-owner-text-unknown = Find what counts the requests of { $tier } (HAProxy: deny or tarpit with a stick table; a gateway's or an application's rate limit), and ask whoever set it whether it is meant for this traffic. If not, raise the number, or exempt this address.
remedy-ask-limit-owner-risk = The limit may protect the server, or the servers behind it, from abuse or overload. chokepoint never changes it.
