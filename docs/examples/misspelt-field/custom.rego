package router.custom

# Refused at load: the field is hostNetwork.
denials contains "the host's network is not for tenants" if input.pod.spec.hostNetwrok
