import evenfeed as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy()

with strategy.scope():  # each replica has a copy of these
    weight = tf.Variable(1.0, aggregation=tf.VariableAggregation.MEAN)
    seen = tf.Variable(
        0,
        synchronization=tf.VariableSynchronization.ON_READ,
        aggregation=tf.VariableAggregation.SUM,
    )


def step(x):
    seen.assign_add(x.shape[0])  # each replica counts its own rows
    weight.assign_add(tf.reduce_sum(x))  # the copies get the mean of what the replicas add
    return x * weight


dataset = tf.data.Dataset.from_tensor_slices([1.0, 2.0, 3.0, 4.0]).batch(4)
for x in strategy.experimental_distribute_dataset(dataset):
    products = strategy.run(step, args=(x,))
    print(products)
    print("mean", strategy.reduce("MEAN", products, axis=0))
    print("all", strategy.gather(products, axis=0))
print(weight)
print("rows", seen.numpy())
