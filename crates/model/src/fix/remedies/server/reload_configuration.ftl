# What remedy reload-configuration does, and its risk.

remedy-reload-configuration-queue = Check what else was changed in { $file }, then reload { $tier } yourself. If its limit is not { $limit } after that, nginx saw the same value of backlog= as before and did not listen again: diagnose once more.
remedy-reload-configuration-pool = Check what else was changed in { $file }, then reload { $tier } yourself, so that it runs { $written } workers instead of { $running }.
remedy-reload-configuration-risk = The reload activates everything that was changed in the configuration files since the last one.
