# What remedy ask-limit-owner does, and its risk.

remedy-ask-limit-owner-text = Ask whoever set the limit at { $place } whether it is meant for this traffic. If not, raise the rate of zone { $zone } ({ $zone_place }), or leave this address out of the limit: requests whose key is empty are not counted.
remedy-ask-limit-owner-text-connections = Ask whoever set the limit at { $place } whether it is meant for this traffic. If not, raise the number, or leave this address out of the limit: connections whose key is empty are not counted.
remedy-ask-limit-owner-risk = The limit may be what keeps abuse away or the servers behind it alive. It is never changed from here.
