"""The fields of every kind that the sandbox serves, as one table.

One line per type: ``Name field=type ...``. Decoding, unknown-field checks, strategic merge,
server-side apply and OpenAPI all read this table, so that they can't disagree.

Types: ``str int bool qty intstr time bytes any`` or another line's name. ``int?`` and ``bool?``
keep their zero value (a pointer in Kubernetes), the others drop it. ``[T]`` a list that is replaced
as a whole, ``[T]key`` one merged by a key (``[T]a+b``: applied by both, patched by the first),
``[str]*`` a set, ``{T}`` a map. A trailing ``!`` makes a struct or a map atomic in apply.
``@1.27`` is the server's minor version from which on the field exists.
"""

TYPES = """
ObjectMeta name=str generateName=str namespace=str selfLink=str uid=str resourceVersion=str \
 generation=int creationTimestamp=time deletionTimestamp=time deletionGracePeriodSeconds=int? \
 labels={str} annotations={str} ownerReferences=[OwnerReference]uid finalizers=[str]* \
 managedFields=[any]
OwnerReference! apiVersion=str kind=str name=str uid=str controller=bool? blockOwnerDeletion=bool?

Pod apiVersion=str kind=str metadata=ObjectMeta spec=PodSpec status=PodStatus
PodSpec volumes=[Volume]name initContainers=[Container]name containers=[Container]name \
 ephemeralContainers=[EphemeralContainer]name restartPolicy=str terminationGracePeriodSeconds=int? \
 activeDeadlineSeconds=int? dnsPolicy=str nodeSelector={str}! serviceAccountName=str \
 serviceAccount=str automountServiceAccountToken=bool? nodeName=str hostNetwork=bool hostPID=bool \
 hostIPC=bool shareProcessNamespace=bool? securityContext=PodSecurityContext \
 imagePullSecrets=[LocalObjectReference]name hostname=str subdomain=str affinity=any \
 schedulerName=str tolerations=[Toleration] hostAliases=[HostAlias]ip priorityClassName=str \
 priority=int? dnsConfig=PodDNSConfig readinessGates=[any] runtimeClassName=str? \
 enableServiceLinks=bool? preemptionPolicy=str? overhead={qty} \
 topologySpreadConstraints=[TopologySpreadConstraint]topologyKey+whenUnsatisfiable \
 setHostnameAsFQDN=bool? os=PodOS@1.24 hostUsers=bool?@1.25 \
 schedulingGates=[PodSchedulingGate]name@1.27 resourceClaims=[PodResourceClaim]name@1.32 \
 resources=ResourceRequirements@1.32
PodSchedulingGate name=str
PodResourceClaim name=str resourceClaimName=str? resourceClaimTemplateName=str?
PodOS name=str
PodDNSConfig nameservers=[str] searches=[str] options=[PodDNSConfigOption]
PodDNSConfigOption name=str value=str?
HostAlias ip=str hostnames=[str]
LocalObjectReference! name=str
Toleration key=str operator=str value=str effect=str tolerationSeconds=int?
TopologySpreadConstraint maxSkew=int topologyKey=str whenUnsatisfiable=str \
 labelSelector=LabelSelector minDomains=int?@1.25 nodeAffinityPolicy=str?@1.26 \
 nodeTaintsPolicy=str?@1.26 matchLabelKeys=[str]@1.27
LabelSelector! matchLabels={str} matchExpressions=[LabelSelectorRequirement]
LabelSelectorRequirement key=str operator=str values=[str]
PodSecurityContext seLinuxOptions=SELinuxOptions windowsOptions=any runAsUser=int? runAsGroup=int? \
 runAsNonRoot=bool? supplementalGroups=[int] fsGroup=int? sysctls=[Sysctl] \
 fsGroupChangePolicy=str? seccompProfile=SeccompProfile appArmorProfile=SeccompProfile@1.30 \
 supplementalGroupsPolicy=str?@1.31
SELinuxOptions user=str role=str type=str level=str
SeccompProfile type=str localhostProfile=str?
Sysctl name=str value=str
Container name=str image=str command=[str] args=[str] workingDir=str \
 ports=[ContainerPort]containerPort+protocol envFrom=[EnvFromSource] env=[EnvVar]name \
 resources=ResourceRequirements resizePolicy=[ContainerResizePolicy]@1.33 restartPolicy=str?@1.29 \
 volumeMounts=[VolumeMount]mountPath volumeDevices=[VolumeDevice]devicePath livenessProbe=Probe \
 readinessProbe=Probe startupProbe=Probe lifecycle=Lifecycle terminationMessagePath=str \
 terminationMessagePolicy=str imagePullPolicy=str securityContext=SecurityContext stdin=bool \
 stdinOnce=bool tty=bool
EphemeralContainer name=str image=str command=[str] args=[str] workingDir=str env=[EnvVar]name \
 envFrom=[EnvFromSource] volumeMounts=[VolumeMount]mountPath imagePullPolicy=str \
 terminationMessagePath=str terminationMessagePolicy=str securityContext=SecurityContext \
 stdin=bool stdinOnce=bool tty=bool targetContainerName=str
ContainerResizePolicy resourceName=str restartPolicy=str
ContainerPort name=str hostPort=int containerPort=int protocol=str hostIP=str
EnvVar name=str value=str valueFrom=EnvVarSource
EnvVarSource fieldRef=ObjectFieldSelector resourceFieldRef=ResourceFieldSelector \
 configMapKeyRef=KeySelector secretKeyRef=KeySelector
ObjectFieldSelector! apiVersion=str fieldPath=str
ResourceFieldSelector! containerName=str resource=str divisor=qty
KeySelector! name=str key=str optional=bool?
EnvFromSource prefix=str configMapRef=EnvSource secretRef=EnvSource
EnvSource name=str optional=bool?
ResourceRequirements limits={qty} requests={qty} claims=[ResourceClaim]name@1.26
ResourceClaim name=str request=str
VolumeMount name=str readOnly=bool mountPath=str subPath=str mountPropagation=str? subPathExpr=str \
 recursiveReadOnly=str?@1.31
VolumeDevice name=str devicePath=str
Probe exec=ExecAction httpGet=HTTPGetAction tcpSocket=TCPSocketAction grpc=any@1.24 \
 initialDelaySeconds=int timeoutSeconds=int periodSeconds=int successThreshold=int \
 failureThreshold=int terminationGracePeriodSeconds=int?@1.25
ExecAction command=[str]
HTTPGetAction path=str port=intstr host=str scheme=str httpHeaders=[HTTPHeader]
HTTPHeader name=str value=str
TCPSocketAction port=intstr host=str
Lifecycle postStart=LifecycleHandler preStop=LifecycleHandler
LifecycleHandler exec=ExecAction httpGet=HTTPGetAction tcpSocket=TCPSocketAction sleep=any@1.30
SecurityContext capabilities=Capabilities privileged=bool? seLinuxOptions=SELinuxOptions \
 windowsOptions=any runAsUser=int? runAsGroup=int? runAsNonRoot=bool? readOnlyRootFilesystem=bool? \
 allowPrivilegeEscalation=bool? procMount=str? seccompProfile=SeccompProfile \
 appArmorProfile=SeccompProfile@1.30
Capabilities add=[str] drop=[str]
Volume name=str emptyDir=EmptyDir hostPath=HostPath secret=SecretVolume configMap=ConfigMapVolume \
 projected=Projected downwardAPI=DownwardAPI persistentVolumeClaim=ClaimVolume ephemeral=any \
 csi=any nfs=any iscsi=any image=any@1.33 azureFile=any azureDisk=any awsElasticBlockStore=any \
 gcePersistentDisk=any gitRepo=any glusterfs=any rbd=any flexVolume=any cinder=any cephfs=any \
 flocker=any fc=any vsphereVolume=any quobyte=any portworxVolume=any scaleIO=any storageos=any \
 photonPersistentDisk=any
EmptyDir medium=str sizeLimit=qty
HostPath path=str type=str?
SecretVolume secretName=str items=[KeyToPath] defaultMode=int? optional=bool?
ConfigMapVolume name=str items=[KeyToPath] defaultMode=int? optional=bool?
KeyToPath key=str path=str mode=int?
Projected sources=[VolumeProjection] defaultMode=int?
VolumeProjection secret=ProjectedKeys configMap=ProjectedKeys downwardAPI=DownwardAPI \
 serviceAccountToken=any clusterTrustBundle=any
ProjectedKeys name=str items=[KeyToPath] optional=bool?
DownwardAPI items=[DownwardAPIFile] defaultMode=int?
DownwardAPIFile path=str fieldRef=ObjectFieldSelector resourceFieldRef=ResourceFieldSelector \
 mode=int?
ClaimVolume claimName=str readOnly=bool
PodStatus phase=str conditions=[PodCondition]type message=str reason=str nominatedNodeName=str \
 hostIP=str hostIPs=[PodIP]@1.29 podIP=str podIPs=[PodIP]ip startTime=time \
 initContainerStatuses=[any] containerStatuses=[any] ephemeralContainerStatuses=[any] qosClass=str \
 resize=str observedGeneration=int
PodIP ip=str
PodCondition type=str status=str lastProbeTime=time lastTransitionTime=time reason=str message=str \
 observedGeneration=int

Secret apiVersion=str kind=str metadata=ObjectMeta immutable=bool? data={bytes} stringData={str} \
 type=str
ConfigMap apiVersion=str kind=str metadata=ObjectMeta immutable=bool? data={str} binaryData={bytes}
Namespace apiVersion=str kind=str metadata=ObjectMeta spec=NamespaceSpec status=NamespaceStatus
NamespaceSpec finalizers=[str]
NamespaceStatus phase=str conditions=[PodCondition]type
ServiceAccount apiVersion=str kind=str metadata=ObjectMeta secrets=[ObjectReference]name \
 imagePullSecrets=[LocalObjectReference] automountServiceAccountToken=bool?
ObjectReference! kind=str namespace=str name=str uid=str apiVersion=str resourceVersion=str \
 fieldPath=str
ResourceQuota apiVersion=str kind=str metadata=ObjectMeta spec=QuotaSpec status=QuotaStatus
QuotaSpec hard={qty} scopes=[str] scopeSelector=ScopeSelector
ScopeSelector! matchExpressions=[ScopeRequirement]
ScopeRequirement scopeName=str operator=str values=[str]
QuotaStatus hard={qty} used={qty}
Node apiVersion=str kind=str metadata=ObjectMeta spec=NodeSpec status=any
NodeSpec podCIDR=str podCIDRs=[str]* providerID=str unschedulable=bool taints=[Taint] \
 configSource=any
Taint key=str value=str effect=str timeAdded=time
Event apiVersion=str kind=str metadata=ObjectMeta involvedObject=ObjectReference reason=str \
 message=str source=EventSource firstTimestamp=time lastTimestamp=time count=int type=str \
 eventTime=time series=EventSeries action=str related=ObjectReference reportingComponent=str \
 reportingInstance=str
EventSource component=str host=str
EventSeries count=int lastObservedTime=time
Lease apiVersion=str kind=str metadata=ObjectMeta spec=LeaseSpec
LeaseSpec holderIdentity=str? leaseDurationSeconds=int? acquireTime=time renewTime=time \
 leaseTransitions=int? strategy=str?@1.33 preferredHolder=str?@1.33
Binding apiVersion=str kind=str metadata=ObjectMeta target=ObjectReference
Eviction apiVersion=str kind=str metadata=ObjectMeta deleteOptions=any
EventsV1Event apiVersion=str kind=str metadata=ObjectMeta eventTime=time series=EventSeries \
 reportingController=str reportingInstance=str action=str reason=str regarding=ObjectReference \
 related=ObjectReference note=str type=str deprecatedSource=EventSource \
 deprecatedFirstTimestamp=time deprecatedLastTimestamp=time deprecatedCount=int
SelfSubjectAccessReview apiVersion=str kind=str metadata=ObjectMeta spec=any status=any
SelfSubjectRulesReview apiVersion=str kind=str metadata=ObjectMeta spec=any status=any
"""
