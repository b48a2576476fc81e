# The steps of a remedy that a person carries out, and what stops meanwhile.

step-set = Set { $key } to { $value }:
step-set-back = Set { $key } back to { $value }:
step-set-in-netns = Set { $key } to { $value } in network namespace { $netns }, from one of its processes (nsenter -t PID -n).
step-load-module = Load { $module } at boot before the sysctls are set, because without it these settings do not exist:
step-keep-sysctl = Set it at every boot:
step-forget-sysctl = Remove the files that set it at boot, if you added them:
step-keep-in-netns = Set { $key } to { $value } where network namespace { $netns } is created, because the setting ends with the namespace.
step-edit = Edit { $file }:
step-edit-back = Revert the edit of { $file }:
step-write = Set in { $file }:
step-write-back = Set back in { $file }:
step-write-away = Remove again from { $file }:
step-of-another-user = This server runs as user { $uid }, and root changes only its own servers. Run chokepoint as that user (sudo -u '#{ $uid }'), or paste:
step-of-another-user-by-hand = This server runs as user { $uid }, and root changes only its own servers.
step-log-alone = Only an error log says so, and whoever sends requests can write such lines, so this is not done by --fix. Check the limit yourself first:
step-others-write = There is no command to paste, because it could run what others wrote: { $why }. Let only the user of { $server } and root change that, and look at what it holds, before you go on:
step-test = Test the configuration:
step-reload = Reload { $server }:
step-wait-for-old-workers = Wait until the old workers of nginx have finished their requests:
step-restart = Restart { $server }, because a reload does not apply this:
step-test-and-reload = Test { $file } with the program of { $server } and its option { $option }, then reload { $server }.
step-test-and-restart = Test { $file } with the program of { $server } and its option { $option }, then restart { $server }, because a reload does not apply this.
step-restart-container = { $server } runs in a container: make the edit in its image or in the mounted file, then restart it ({ $engine } restart { $id }), or start a new one if the image changed.
step-restart-pod = { $server } runs in a pod: make the edit in its image or ConfigMap, then restart its workload (kubectl rollout restart).
step-restart-elsewhere = { $server } (process { $pid }) has its own file system: make the edit there, and restart it the way it was started.
step-php-fpm-files = Set in { $file }, in its section global or in the pool:
step-unit-files = Set in a drop-in of its unit with systemctl edit, then restart the unit:
step-line-now = { $place }, as it is now:
step-pod-manifest = In the manifest of the pod, at its container:
step-compose-file = In compose.yaml, at its service:

stops-nginx-reload = By hand, a reload stops nothing: old workers finish their requests, and idle kept connections are closed.
stops-php-fpm-reload = { $seconds ->
    [0] The reload ends the requests in service, because process_control_timeout is not set.
   *[other] The reload lets workers finish their requests for up to { $seconds } s (process_control_timeout).
}
stops-php-fpm-restart = By hand, php-fpm must be restarted: new connections are refused until it runs again, and { $seconds ->
    [0] the requests in service end, because process_control_timeout is not set.
   *[other] the requests in service get { $seconds } s to finish (process_control_timeout).
}
stops-restart = By hand, { $server } must be restarted: requests in service end, and new connections are refused until it runs again.
stops-container = By hand, the container must be restarted: its requests in service end, and new connections are refused until it runs again.
